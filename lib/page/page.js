/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the page again every few seconds and puts the new content in place of the old, so that open
 * rows, the filter and the scroll position stay. An answer that does not come, or is no page, leaves
 * the last one, with a note of its age. A browser lets a file read no file, not even itself: opened
 * as file:///rmm/index.html the page is loaded anew, and history.state keeps the rest.
 */
"use strict";
(() => {
    const find = (id) => document.getElementById(id);
    const state = Object.assign({ open: [], left: {}, filter: "", seconds: "10" }, history.state);

    function keep() {
        state.open = [];
        for (const row of document.querySelectorAll("details[open]")) {
            const inside = row.querySelector(".scroll");
            state.open.push(row.id);
            state.left[row.id] = inside !== null ? inside.scrollLeft : 0;
        }
        state.filter = find("filter").value;
        state.seconds = find("seconds").value;
        history.replaceState(state, "");
    }

    function filter() {
        const wanted = find("filter").value.toLowerCase();
        for (const row of document.querySelectorAll(".rows > details, #jobs tr + tr")) {
            const text = (row.querySelector("summary") || row).textContent;
            row.hidden = !text.toLowerCase().includes(wanted);
        }
    }

    function restore() {
        for (const row of document.querySelectorAll("details")) {
            const inside = row.querySelector(".scroll");
            row.open = state.open.includes(row.id);
            if (row.open && inside !== null && state.left[row.id] > 0) {
                inside.scrollLeft = state.left[row.id];
            }
        }
        filter();
    }

    function show(next) {
        const focused = document.activeElement.closest("details");
        document.querySelector("main").replaceWith(next.querySelector("main"));
        find("time").textContent = next.getElementById("time").textContent;
        find("stale").hidden = true;
        restore();
        if (focused !== null && find(focused.id) !== null) {
            find(focused.id).querySelector("summary").focus({ preventScroll: true });
        }
    }

    async function refresh() {
        keep();
        if (location.protocol === "file:") {
            location.reload();
            return;
        }
        try {
            const answer = await fetch(location.href,
                { cache: "no-store", signal: AbortSignal.timeout(15000) });
            const next = new DOMParser().parseFromString(await answer.text(), "text/html");
            if (!answer.ok || next.querySelector("main") === null) {
                throw new Error("no page");
            }
            keep();
            show(next);
        } catch (error) {
            find("stale").textContent = "no answer since then";
            find("stale").hidden = false;
        }
    }

    /* Not while text is selected, and not in a hidden tab. */
    let waited = 0;
    async function tick() {
        const seconds = Number(find("seconds").value);
        waited++;
        if (seconds > 0 && waited >= seconds && !document.hidden &&
            getSelection().isCollapsed) {
            await refresh();
            waited = 0;
        }
        setTimeout(tick, 1000);
    }

    find("filter").value = state.filter;
    find("seconds").value = state.seconds;
    find("controls").hidden = false;
    find("controls").addEventListener("submit", (event) => event.preventDefault());
    find("filter").addEventListener("input", filter);
    if (history.state !== null) {
        restore();
    }
    setTimeout(tick, 1000);
})();
