"""What eager decides on its way, and the search for inputs on which it decides otherwise."""
