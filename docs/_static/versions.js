"use strict";
// The list of versions beside each page of the hosted site.
addEventListener("DOMContentLoaded", async () => {
  const top = new URL(document.documentElement.dataset.content_root, location.href);
  const here = top.pathname.split("/").at(-2);
  const answer = await fetch(new URL("../versions.json", top)).catch(() => null);
  if (!answer?.ok) return; // a copy of the site has no other versions
  const { stable, versions } = await answer.json();
  const list = document.createElement("select");
  list.setAttribute("aria-label", "Version");
  for (const version of versions) {
    const shown = version === here || (here === "stable" && version === stable);
    list.add(new Option(version === stable ? `${version} (stable)` : version, version, shown, shown));
  }
  list.addEventListener("change", async () => {
    const folder = new URL(`../${list.value}/`, top);
    const same = new URL(location.href.slice(top.href.length), folder);
    const there = await fetch(same, { method: "HEAD" }); // a version may not have this page
    location.href = there.ok ? same : folder;
  });
  const place = document.createElement("div");
  place.className = "version";
  place.append(list);
  document.querySelector(".sidebar-search-container").before(place);
});
