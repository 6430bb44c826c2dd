"""From what the user gives (a model, arguments, declarations, a command line) to a Job."""
