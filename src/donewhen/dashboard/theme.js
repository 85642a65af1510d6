/* Light or dark colours: those of the system until somebody chooses. Every page of donewhen keeps the same choice. */

/* Some browsers give a local file no storage. */
function storedTheme(name) {
  try {
    if (name !== undefined) localStorage.setItem("donewhen-theme", name);
    const kept = localStorage.getItem("donewhen-theme");
    return kept === "dark" || kept === "light" ? kept : "";
  } catch {
    return "";
  }
}

const isDark = () => (document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);

function useTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  if (!button) return;
  button.hidden = false;
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
}

function bindTheme() {
  useTheme("");
  document.getElementById("theme").addEventListener("click", () => {
    const name = isDark() ? "light" : "dark";
    storedTheme(name);
    useTheme(name);
  });
}

useTheme(storedTheme());
if (document.getElementById("theme")) bindTheme();
else document.addEventListener("DOMContentLoaded", bindTheme);
