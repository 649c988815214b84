"use strict";
// The page `search.html?q=…`, to which the form beside each page leads.
if (location.protocol === "file:") {
  document.getElementById("search").innerHTML =
    "<p>The search needs a server: <code>python -m http.server -d build/docs</code></p>";
} else {
  const search = new PagefindUI({ element: "#search", showImages: false, showSubResults: true });
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) search.triggerSearch(asked);
}
