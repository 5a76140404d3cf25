/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws the history that stands in the page as JSON (page.c). Texts of the program, such as names
 * of kernels, are only ever set as text, never as HTML.
 */
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const palette = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1",
    "#ff9da7", "#9c755f", "#86bcb6", "#d37295", "#8cd17d"];
const otherColour = "#8c959f";
/* Of sizes, which have an order: from small to large. All can be seen on both grounds. */
const ramp = [[217, 179, 16], [242, 150, 46], [232, 106, 74], [214, 72, 110], [176, 60, 150],
    [125, 72, 190], [80, 100, 214]];
/* A block in the data: which place has what. */
const BEGIN = 0, END = 1, PLACE = 2, BYTES = 3, RESOURCE = 4, STREAM = 5, FIRST = 6, LAST = 7,
    LEFT = 8;
const LANE_HEIGHT = 18, LANES_MAX = 24;

const mapBytes = data.regions.reduce((sum, region) => sum + region[1], 0) || 1;
const span = data.span || 1;
const view = { begin: 0, end: span, low: 0, high: mapBytes };
const element = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const lineCanvas = element("line"), lanesCanvas = element("lanes"), mapCanvas = element("map");

/* --- texts ---------------------------------------------------------------------------- */

function bytesText(bytes) {
    const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let value = bytes, unit = 0;
    while (value >= 1024 && unit + 1 < units.length) {
        value /= 1024;
        unit++;
    }
    return unit === 0 ? bytes + " bytes" : value.toFixed(1) + " " + units[unit];
}

function timeText(ns) {
    if (ns >= 1e9) {
        return (ns / 1e9).toFixed(3) + " s";
    }
    return ns >= 1e6 ? (ns / 1e6).toFixed(3) + " ms" : (ns / 1e3).toFixed(3) + " us";
}

function nameText(index, none) {
    return index >= 0 && index < data.names.length ? data.names[index] : none;
}

/* The address at a place of the map; addresses need more digits than a number has. */
function addressText(place) {
    for (const [begin, bytes] of data.regions) {
        if (place < bytes) {
            return "0x" + (BigInt(begin) + BigInt(Math.floor(place))).toString(16);
        }
        place -= bytes;
    }
    return "";
}

function blockText(block) {
    return [bytesText(block[BYTES]) + " (" + block[BYTES] + ") at " + addressText(block[PLACE]),
        data.resources[block[RESOURCE]] + ", " + data.streams[block[STREAM]],
        "allocated at " + timeText(block[BEGIN]) + ", " +
            (block[LEFT] ? "not freed" : "freed at " + timeText(block[END])),
        "first used by " + nameText(block[FIRST], "no kernel that was seen"),
        "last used by " + nameText(block[LAST], "no kernel that was seen")].join("\n");
}

/* --- colours -------------------------------------------------------------------------- */

function classOf(block) {
    switch (element("colour").value) {
    case "size":
        return Math.floor(Math.log2(Math.max(block[BYTES], 1)));
    case "first":
        return block[FIRST];
    case "stream":
        return block[STREAM];
    default:
        return block[RESOURCE];
    }
}

function sizeText(exponent) {
    return "from " + bytesText(Math.pow(2, exponent));
}

function classText(value) {
    switch (element("colour").value) {
    case "size":
        return sizeText(value);
    case "first":
        return nameText(value, "none");
    case "stream":
        return data.streams[value];
    default:
        return data.resources[value];
    }
}

/* The keys of a map of counts, those with most first. */
function ranked(counts) {
    return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
}

function count(counts, key, by) {
    counts.set(key, (counts.get(key) || 0) + by);
}

/* The most frequent kernels have a colour each, the same in blocks and in launches. */
const nameColours = new Map();
function chooseNameColours() {
    const counts = new Map();
    data.blocks.forEach((block) => count(counts, block[FIRST], 1));
    data.calls.forEach((call) => count(counts, call[2], call[3]));
    counts.delete(-1);
    ranked(counts).slice(0, palette.length)
        .forEach((name, i) => nameColours.set(name, palette[i]));
}

/* share: 0 to 1 */
function rampColour(share) {
    const at = share * (ramp.length - 1), low = Math.min(Math.floor(at), ramp.length - 2);
    const mixed = ramp[low].map((from, i) =>
        Math.round(from + (ramp[low + 1][i] - from) * (at - low)));
    return "#" + mixed.map((part) => part.toString(16).padStart(2, "0")).join("");
}

/* Classes of blocks, those with the most bytes x time first, and their colours. */
let classes = [], classColours = nameColours;
function chooseColours() {
    const weights = new Map(), kind = element("colour").value;
    for (const block of data.blocks) {
        count(weights, classOf(block), block[BYTES] * (block[END] - block[BEGIN] + 1));
    }
    classes = ranked(weights);
    if (kind === "first") {
        classColours = nameColours;
    } else if (kind === "size") {
        classes.sort((a, b) => a - b);
        const last = Math.max(classes.length - 1, 1);
        classColours = new Map(classes.map((size, i) => [size, rampColour(i / last)]));
    } else {
        classColours = new Map(classes.slice(0, palette.length).map((value, i) => [value, palette[i]]));
    }
}

function colourOf(value) {
    return classColours.get(value) || otherColour;
}

/* A click on a class searches for it. */
function legendPart(value) {
    const part = document.createElement("span"), box = document.createElement("i");
    const text = classText(value);
    box.style.background = colourOf(value);
    part.title = text;
    part.append(box, text);
    if (element("colour").value !== "size" && value >= 0) {
        part.addEventListener("click", () => {
            element("search").value = element("search").value === text ? "" : text;
            search();
        });
    }
    return part;
}

function showLegend() {
    chooseColours();
    const shown = classes.filter((value) => classColours.has(value) || value === -1);
    const parts = shown.map(legendPart);
    if (classes.length > shown.length) {
        const part = document.createElement("span"), box = document.createElement("i");
        box.style.background = otherColour;
        part.append(box, "and " + (classes.length - shown.length) + " more");
        parts.push(part);
    }
    element("legend").replaceChildren(...parts);
}

/* --- search --------------------------------------------------------------------------- */

/* What is searched for: indexes of names, resources and streams, and an address; null: nothing. */
let wanted = null;

function indexesOf(texts, text) {
    return new Set(texts.map((item, i) => item.toLowerCase().includes(text) ? i : -1)
        .filter((i) => i >= 0));
}

function placeOf(address) {
    let below = 0;
    for (const [begin, bytes] of data.regions) {
        const offset = address - BigInt(begin);
        if (offset >= 0n && offset < BigInt(bytes)) {
            return below + Number(offset);
        }
        below += bytes;
    }
    return -1;
}

function isWanted(block) {
    return wanted === null || wanted.names.has(block[FIRST]) || wanted.names.has(block[LAST]) ||
        wanted.resources.has(block[RESOURCE]) || wanted.streams.has(block[STREAM]) ||
        (block[PLACE] <= wanted.place && wanted.place < block[PLACE] + block[BYTES]);
}

function isCallWanted(call) {
    return wanted === null || wanted.names.has(call[2]) || wanted.streams.has(call[1]);
}

function search() {
    const text = element("search").value.trim().toLowerCase();
    wanted = text === "" ? null : {
        names: indexesOf(data.names, text),
        resources: indexesOf(data.resources, text),
        streams: indexesOf(data.streams, text),
        place: /^0x[0-9a-f]{1,16}$/.test(text) ? placeOf(BigInt(text)) : -1,
    };
    element("found").textContent = wanted === null ? "" :
        data.blocks.filter(isWanted).length + " of " + data.blocks.length + " blocks, " +
        data.calls.filter(isCallWanted).length + " of " + data.calls.length + " launches";
    draw();
}

/* --- drawing -------------------------------------------------------------------------- */

/* A cleared context in CSS pixels. */
function prepare(canvas, height) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = height + "px";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.clearRect(0, 0, width, height);
    context.font = "11px sans-serif";
    return { context, width, height };
}

function xOf(time, width) {
    return (time - view.begin) / (view.end - view.begin) * width;
}

/* The lowest address is at the bottom. */
function yOf(place, height) {
    return height - (place - view.low) / (view.high - view.low) * height;
}

/* 1, 2 or 5 times a power of ten, at least so much. */
function roundStep(least) {
    const power = Math.pow(10, Math.floor(Math.log10(least)));
    return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999);
}

/* Multiples of the step from..to. */
function multiples(step, from, to) {
    const ticks = [];
    for (let i = Math.ceil(from / step); i * step <= to && ticks.length < 100; i++) {
        ticks.push(i * step);
    }
    return ticks;
}

function timeTicks(width) {
    const step = roundStep(Math.max((view.end - view.begin) * 100 / width, 1));
    const [name, unit] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]]
        .find(([, size]) => view.end >= size) || ["ns", 1];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
    return multiples(step, view.begin, view.end)
        .map((time) => [xOf(time, width), (time / unit).toFixed(digits) + " " + name]);
}

/* At multiples of a power of two, 40 pixels apart or more. */
function byteTicks(from, to, height) {
    const step = Math.pow(2, Math.ceil(Math.log2(Math.max((to - from) * 40 / height, 1))));
    return multiples(step, from, to).map((bytes) => {
        const power = bytes === 0 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), 4);
        const value = Number((bytes / Math.pow(1024, power)).toFixed(2));
        return [bytes, bytes === 0 ? "0" : value + " " + ["B", "KiB", "MiB", "GiB", "TiB"][power]];
    });
}

function strokeLine(context, fromX, fromY, toX, toY) {
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.lineTo(toX, toY);
    context.stroke();
}

function drawTimeGrid(context, width, height) {
    context.strokeStyle = style("--line");
    for (const [x] of timeTicks(width)) {
        strokeLine(context, Math.round(x) + 0.5, 0, Math.round(x) + 0.5, height);
    }
}

function drawAxis(canvas) {
    const { context, width } = prepare(canvas, 20);
    context.strokeStyle = context.fillStyle = style("--dim");
    for (const [x, text] of timeTicks(width)) {
        const room = context.measureText(text).width / 2;
        strokeLine(context, Math.round(x) + 0.5, 0, Math.round(x) + 0.5, 4);
        context.fillText(text, Math.min(Math.max(x - room, 0), width - 2 * room), 16);
    }
}

/* Beside a plot: toY(bytes) is in its coordinates. */
function drawScale(canvas, height, ticks, toY) {
    const { context, width } = prepare(canvas, height);
    context.strokeStyle = context.fillStyle = style("--dim");
    for (const [bytes, text] of ticks) {
        const y = toY(bytes);
        strokeLine(context, width - 4, Math.round(y) - 0.5, width, Math.round(y) - 0.5);
        context.fillText(text, width - 7 - context.measureText(text).width,
            Math.min(Math.max(y + 4, 9), height - 1));
    }
}

function drawLine() {
    const { context, width, height } = prepare(lineCanvas, 130);
    const location = data.locations[element("location").selectedIndex];
    drawTimeGrid(context, width, height);
    if (!location) {
        return;
    }
    const scale = (height - 20) / (location.peak_bytes || 1), bins = location.line.length;
    const ticks = byteTicks(0, height / scale, height);
    for (const [bytes] of ticks) {
        const y = Math.round(height - bytes * scale) - 0.5;
        strokeLine(context, 0, y, width, y);
    }
    drawScale(element("line-scale"), height, ticks, (bytes) => height - bytes * scale);
    context.beginPath();
    context.moveTo(xOf(0, width), height);
    location.line.forEach((bytes, i) => {
        context.lineTo(xOf(i / bins * span, width), height - bytes * scale);
        context.lineTo(xOf((i + 1) / bins * span, width), height - bytes * scale);
    });
    context.lineTo(xOf(span, width), height);
    context.globalAlpha = 0.8;
    context.fillStyle = style("--area");
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = style("--edge");
    context.stroke();
    const x = xOf(location.peak_at, width), label = "peak " + bytesText(location.peak_bytes);
    context.fillStyle = style("--peak");
    context.fillRect(x - 0.5, 0, 1, height);
    const left = Math.min(Math.max(x + 4, 2), width - context.measureText(label).width - 2);
    context.fillText(label, left, 12);
}

/* The streams with the most launches have a lane each. */
const laneOf = new Map();
function chooseLanes() {
    const counts = new Map();
    for (const call of data.calls) {
        counts.set(call[1], (counts.get(call[1]) || 0) + call[3]);
    }
    const streams = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
    const shown = streams.slice(0, LANES_MAX).sort((a, b) => a - b);
    shown.forEach((stream, i) => laneOf.set(stream, i));
    const hidden = streams.length - shown.length;
    element("lanes-title").textContent = data.call_count === 0
        ? "Launches and copies: none is known"
        : "Launches and copies" + (hidden > 0 ? " (" + hidden + " streams are not shown)" : "");
}

function drawLanes() {
    const { context, width, height } = prepare(lanesCanvas, laneOf.size * LANE_HEIGHT);
    drawTimeGrid(context, width, height);
    for (const call of data.calls) {
        const [time, stream, name] = call, lane = laneOf.get(stream), x = xOf(time, width);
        if (lane !== undefined && x >= 0 && x <= width) {
            context.globalAlpha = isCallWanted(call) ? 1 : 0.15;
            context.fillStyle = nameColours.get(name) || otherColour;
            context.fillRect(x, lane * LANE_HEIGHT + 2, 1.5, LANE_HEIGHT - 4);
        }
    }
    context.globalAlpha = 1;
    for (const [stream, lane] of laneOf) {
        context.fillStyle = style("--ground");
        context.fillRect(0, lane * LANE_HEIGHT, context.measureText(data.streams[stream]).width + 8,
            LANE_HEIGHT);
        context.fillStyle = style("--text");
        context.fillText(data.streams[stream], 4, lane * LANE_HEIGHT + 13);
        context.fillStyle = style("--line");
        context.fillRect(0, (lane + 1) * LANE_HEIGHT - 1, width, 1);
    }
}

/* The blocks that are not drawn one by one. */
function drawGrid(context, width, height) {
    const cellWidth = span / data.columns, cellBytes = mapBytes / data.rows;
    for (let row = 0; row < data.rows; row++) {
        const top = yOf((row + 1) * cellBytes, height), bottom = yOf(row * cellBytes, height);
        for (let column = 0; column < data.columns; column++) {
            const at = 2 * (row * data.columns + column);
            const shade = parseInt(data.grid.substr(at, 2), 16);
            if (shade > 0) {
                const left = xOf(column * cellWidth, width);
                context.fillStyle = "rgba(128,136,146," + (0.1 + shade / 255 * 0.5) + ")";
                context.fillRect(left, top, xOf((column + 1) * cellWidth, width) - left,
                    bottom - top);
            }
        }
    }
}

/* Less half a pixel where there is room, so that neighbours are not one area. */
function apart(length) {
    return length > 4 ? length - 0.5 : Math.max(length, 1);
}

/* What is left of the window, within reason. */
function mapHeight() {
    return Math.min(Math.max(window.innerHeight - 420, 360), 1200);
}

function drawMap() {
    const { context, width, height } = prepare(mapCanvas, mapHeight());
    drawTimeGrid(context, width, height);
    drawScale(element("map-scale"), height, byteTicks(view.low, view.high, height),
        (bytes) => yOf(bytes, height));
    if (data.together > 0) {
        drawGrid(context, width, height);
    }
    for (const block of data.blocks) {
        const left = xOf(block[BEGIN], width), right = xOf(block[END], width);
        const top = yOf(block[PLACE] + block[BYTES], height), bottom = yOf(block[PLACE], height);
        if (right >= 0 && left <= width && bottom >= 0 && top <= height) {
            context.globalAlpha = isWanted(block) ? 1 : 0.12;
            context.fillStyle = colourOf(classOf(block));
            context.fillRect(left, top, apart(right - left), apart(bottom - top));
        }
    }
    let below = 0;
    context.globalAlpha = 1;
    context.fillStyle = style("--region");
    for (const region of data.regions.slice(0, 200)) {
        context.fillRect(0, yOf(below, height), width, 0.5);
        below += region[1];
    }
}

function draw() {
    drawLine();
    drawAxis(element("axis"));
    drawLanes();
    drawMap();
    drawAxis(element("map-axis"));
}

/* --- what held the peak --------------------------------------------------------------- */

function addHolder(share, bytes, count, size, resource, user) {
    const row = document.createElement("tr");
    for (const text of [share.toFixed(1) + " %", bytesText(bytes), count, size, resource, user]) {
        const cell = document.createElement("td");
        cell.textContent = text;
        row.append(cell);
    }
    element("holders").append(row);
}

function showPeak() {
    const location = data.locations[element("location").selectedIndex];
    element("holders").replaceChildren();
    if (!location) {
        element("peak-title").textContent = "No block was allocated";
        return;
    }
    element("peak-title").textContent = "What held the peak of " + location.name + ": " +
        bytesText(location.peak_bytes) + " in " + location.peak_count + " blocks at " +
        timeText(location.peak_at);
    const percent = (bytes) => bytes / (location.peak_bytes || 1) * 100;
    for (const [bytes, count, resource, user, size] of location.holders) {
        addHolder(percent(bytes), bytes, count, sizeText(size), data.resources[resource],
            nameText(user, "-"));
    }
    if (location.others[1] > 0) {
        const [bytes, count] = location.others;
        addHolder(percent(bytes), bytes, count, "", "others", "");
    }
}

/* --- pointing and zooming ------------------------------------------------------------- */

function showTip(event, text) {
    const tip = element("tip");
    tip.hidden = text === "";
    tip.textContent = text;
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
}

function timeAt(event, canvas) {
    const box = canvas.getBoundingClientRect();
    return view.begin + (event.clientX - box.left) / box.width * (view.end - view.begin);
}

function placeAt(event) {
    const box = mapCanvas.getBoundingClientRect();
    return view.low + (box.bottom - event.clientY) / box.height * (view.high - view.low);
}

/* The last one drawn is on top. */
function blockAt(time, place) {
    const slack = 2 * (view.end - view.begin) / mapCanvas.clientWidth;
    for (let i = data.blocks.length - 1; i >= 0; i--) {
        const block = data.blocks[i];
        if (block[BEGIN] - slack <= time && time <= block[END] + slack &&
            block[PLACE] <= place && place < block[PLACE] + block[BYTES]) {
            return block;
        }
    }
    return null;
}

function callAt(event) {
    const box = lanesCanvas.getBoundingClientRect(), time = timeAt(event, lanesCanvas);
    const lane = Math.floor((event.clientY - box.top) / LANE_HEIGHT);
    const slack = 4 * (view.end - view.begin) / box.width;
    let found = null;
    for (const call of data.calls) {
        const distance = Math.abs(call[0] - time);
        if (laneOf.get(call[1]) === lane && distance < slack &&
            (found === null || distance < Math.abs(found[0] - time))) {
            found = call;
        }
    }
    return found;
}

mapCanvas.addEventListener("mousemove", (event) => {
    const time = timeAt(event, mapCanvas), place = placeAt(event), block = blockAt(time, place);
    showTip(event, block ? blockText(block) : timeText(time) + "\n" + addressText(place));
});
lanesCanvas.addEventListener("mousemove", (event) => {
    const call = callAt(event);
    showTip(event, call === null ? "" : nameText(call[2], "unknown") + "\n" + timeText(call[0]) +
        (call[3] > 1 ? "\nand " + (call[3] - 1) + " more close by" : ""));
});
lineCanvas.addEventListener("mousemove", (event) => {
    const location = data.locations[element("location").selectedIndex];
    if (location) {
        const time = timeAt(event, lineCanvas), bins = location.line.length;
        const bin = Math.min(Math.max(Math.floor(time / span * bins), 0), bins - 1);
        showTip(event, timeText(time) + "\nat most " + bytesText(location.line[bin]));
    }
});

/* [begin, end] moved and scaled about a point, kept inside 0..most. */
function zoomed(begin, end, about, factor, most) {
    const length = Math.min(Math.max((end - begin) * factor, most / 1e7), most);
    const share = (about - begin) / (end - begin);
    const first = Math.min(Math.max(about - share * length, 0), most - length);
    return [first, first + length];
}

for (const canvas of [lineCanvas, lanesCanvas, mapCanvas]) {
    canvas.addEventListener("mouseleave", (event) => showTip(event, ""));
    canvas.addEventListener("wheel", (event) => {
        const factor = Math.exp((event.deltaY || event.deltaX) * 0.002);
        event.preventDefault();
        if (event.shiftKey && canvas === mapCanvas) {
            [view.low, view.high] =
                zoomed(view.low, view.high, placeAt(event), factor, mapBytes);
        } else {
            [view.begin, view.end] =
                zoomed(view.begin, view.end, timeAt(event, canvas), factor, span);
        }
        draw();
    }, { passive: false });
    canvas.addEventListener("mousedown", (event) => {
        const from = { x: event.clientX, y: event.clientY, ...view };
        const move = (at) => {
            const box = canvas.getBoundingClientRect();
            const time = (at.clientX - from.x) / box.width * (from.end - from.begin);
            const place = (at.clientY - from.y) / box.height * (from.high - from.low);
            [view.begin, view.end] =
                zoomed(from.begin - time, from.end - time, from.begin - time, 1, span);
            if (canvas === mapCanvas) {
                [view.low, view.high] = zoomed(from.low + place, from.high + place,
                    from.low + place, 1, mapBytes);
            }
            draw();
        };
        window.addEventListener("mousemove", move);
        window.addEventListener("mouseup",
            () => window.removeEventListener("mousemove", move), { once: true });
    });
}

/* --- start ---------------------------------------------------------------------------- */

document.title = data.title;
element("title").textContent = data.title;
element("note").textContent = data.note;
element("summary").textContent = data.block_count + " blocks, " + data.call_count +
    " launches and copies in " + timeText(data.span) + (data.together > 0
        ? "; the " + data.blocks.length + " blocks with the most bytes x time are drawn one by " +
            "one, the other " + data.together + " together, in grey"
        : "") + (data.calls.length < data.call_count
        ? "; launches that are close together are drawn as one"
        : "");
for (const location of data.locations) {
    const option = document.createElement("option");
    option.textContent = location.name;
    element("location").append(option);
}
/* What tells most: kernels where they are known, else what there are several of. */
function chooseColour() {
    element("colour").value = data.blocks.some((block) => block[FIRST] >= 0) ? "first"
        : data.resources.length > 1 ? "resource" : "size";
}
element("colour").addEventListener("change", () => {
    showLegend();
    drawMap();
});
element("location").addEventListener("change", () => {
    showPeak();
    drawLine();
});
element("reset").addEventListener("click", () => {
    Object.assign(view, { begin: 0, end: span, low: 0, high: mapBytes });
    draw();
});
element("search").addEventListener("input", search);
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
chooseColour();
chooseNameColours();
chooseLanes();
showLegend();
showPeak();
draw();
