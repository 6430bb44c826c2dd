// Before the first paint: light or dark as the reader chose here last, else as the system says.
try {
  const chosen = localStorage.getItem("trueport-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* a file without storage */ }
