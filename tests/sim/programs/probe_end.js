/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in a browser behind a page's own script: what is shown, and what is shown after input goes
 * into the element "probe" as JSON.
 */
"use strict";

function find(id) {
    return document.getElementById(id);
}

function texts(id) {
    return [...find(id).children].map((child) => child.textContent);
}

/* Red, green, blue and opacity at a place of a canvas, whose sides are 1 long. */
function pixel(id, x, y) {
    const canvas = find(id);
    return [...canvas.getContext("2d").getImageData(
        Math.floor(x * canvas.width), Math.floor(y * canvas.height), 1, 1).data];
}

/* Of each block the pixel at its centre, as the page's data has it. */
function centres() {
    const history = JSON.parse(find("data").textContent);
    const bytes = history.regions.reduce((sum, region) => sum + region[1], 0);
    return history.blocks.slice(0, 100).map(([begin, end, place, size]) => pixel(
        "map", (begin + end) / 2 / history.span, 1 - (place + size / 2) / bytes));
}

function colours() {
    return Object.fromEntries([...find("legend").children].map((part) => {
        const box = part.querySelector("i");
        return [part.textContent, box === null ? "" : getComputedStyle(box).backgroundColor];
    }));
}

function choose(id, value) {
    find(id).value = value;
    find(id).dispatchEvent(new Event("change"));
}

function point(id, name, x, y, more) {
    const box = find(id).getBoundingClientRect();
    find(id).dispatchEvent(new MouseEvent(name, {
        bubbles: true, clientX: box.left + x * box.width, clientY: box.top + y * box.height,
        ...more }));
    return find("tip").hidden ? "" : find("tip").textContent;
}

function turn(id, more) {
    const box = find(id).getBoundingClientRect();
    find(id).dispatchEvent(new WheelEvent("wheel", {
        cancelable: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2,
        ...more }));
}

/* How many rectangles the canvas has after this. */
function drawnBy(id, act) {
    probe.rectangles[id] = [];
    act();
    return probe.rectangles[id].length;
}

probe.drawn = {};
for (const id of Object.keys(probe.rectangles)) {
    probe.drawn[id] = probe.rectangles[id].length;
}
probe.ticks = probe.rectangles.lanes.filter((drawn) => drawn[3] === 1.5).length;
probe.title = find("title").textContent;
probe.summary = find("summary").textContent;
probe.note = find("note").textContent;
probe.peak = find("peak-title").textContent;
probe.locations = texts("location");
probe.holders = [...find("holders").children].map(
    (row) => [...row.children].map((cell) => cell.textContent));

probe.chosen = find("colour").value;
probe.scales = Object.fromEntries(Object.entries(probe.written).map(
    ([id, list]) => [id, list.map(([text]) => text)]));
probe.colours = {};
for (const kind of ["resource", "first", "stream", "size"]) {
    choose("colour", kind);
    probe.colours[kind] = colours();
}
/* Of each search what it finds, and the centres of the blocks then. */
function lookFor(text) {
    find("search").value = text;
    find("search").dispatchEvent(new Event("input"));
    return [find("found").textContent, centres()];
}
probe.searches = Object.fromEntries(JSON.parse(document.documentElement.dataset.searches || "[]")
    .map((text) => [text, lookFor(text)]));
lookFor("");
probe.centres = centres();
probe.free = pixel("map", 0.9, 0.1);

probe.tips = [...new Set(Array.from({ length: 100 }, (_, i) => i / 100).flatMap(
    (part) => [point("map", "mousemove", 0.999, part), point("map", "mousemove", part, 0.5)])
    .concat(
        /* The peak and all the calls may be brief beside the whole run: every column. */
        Array.from({ length: 2000 }, (_, i) => i / 2000).flatMap((part) => [
            point("line", "mousemove", part, 0.5), point("lanes", "mousemove", part, 0.3)])))];
point("map", "mouseleave", 0.5, 0.5);

probe.zoomed = drawnBy("map", () => turn("map", { deltaY: -2000 }));
point("map", "mousedown", 0.5, 0.5);
window.dispatchEvent(new MouseEvent("mousemove", { clientX: 20, clientY: 230 }));
window.dispatchEvent(new MouseEvent("mouseup"));
turn("map", { deltaY: -500, shiftKey: true });
choose("location", find("location").value);
probe.whole = drawnBy("map", () => find("reset").click());

probe.zoomedScales = probe.written.axis.slice(-30).map(([text]) => text);
delete probe.rectangles;
delete probe.written;
find("probe").textContent = JSON.stringify(probe);
