/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the script of a page outside a browser: elements that only note what is done to them. Prints
 * what the page shows as JSON, and fails where something is drawn at no number.
 * usage: node draw_page.js PAGE
 */
"use strict";

const page = require("fs").readFileSync(process.argv[2], "utf8");
const text = page.match(/<script type="application\/json" id="data">\n([\s\S]*?)<\/script>/)[1];
const script = page.match(/<script>\n([\s\S]*?)<\/script>\n<\/body>/)[1];
const elements = {}, handlers = {}, drawn = {};

const context = new Proxy({ measureText: () => ({ width: 10 }) }, {
    get: (target, name) => target[name] || ((...numbers) => {
        drawn[name] = (drawn[name] || 0) + 1;
        if (numbers.some((number) => typeof number === "number" && !isFinite(number))) {
            throw new Error(String(name) + " at " + numbers);
        }
    }),
    set: () => true,
});

function listen(id) {
    return (name, handler) => {
        (handlers[id + " " + name] = handlers[id + " " + name] || []).push(handler);
    };
}

function makeElement(id) {
    return {
        style: {}, children: [], textContent: id === "data" ? text : "", value: "resource",
        selectedIndex: 0, clientWidth: 1000, offsetWidth: 50, offsetHeight: 20,
        append(...more) { this.children.push(...more); },
        replaceChildren(...all) { this.children = all; },
        addEventListener: listen(id),
        getContext: () => context,
        getBoundingClientRect: () => ({ left: 0, top: 0, width: 1000, height: 460, bottom: 460 }),
    };
}

globalThis.document = {
    getElementById: (id) => elements[id] || (elements[id] = makeElement(id)),
    createElement: makeElement,
};
globalThis.window = {
    devicePixelRatio: 2, innerWidth: 1200, innerHeight: 800, addEventListener: listen("window"),
    removeEventListener() {},
};

function send(id, name, more) {
    const event = { clientX: 500, clientY: 200, deltaY: -100, shiftKey: false, preventDefault() {},
        ...more };
    (handlers[id + " " + name] || []).forEach((handler) => handler(event));
    return elements.tip.textContent;
}

globalThis.eval(script);
const tips = new Set();
for (let y = 0; y < 460; y += 5) {
    tips.add(send("map", "mousemove", { clientX: 999, clientY: y }));
    tips.add(send("lanes", "mousemove", { clientX: 2 * y, clientY: 5 }));
}
for (const canvas of ["line", "lanes", "map"]) {
    for (const name of ["mousemove", "wheel", "mousedown", "mouseleave"]) {
        send(canvas, name, {});
        send(canvas, name, { shiftKey: true, deltaY: 1000 });
    }
}
send("window", "mousemove", { clientX: 520, clientY: 230 });
for (const kind of ["size", "first", "stream", "resource"]) {
    elements.colour.value = kind;
    send("colour", "change", {});
}
send("location", "change", {});
send("reset", "click", {});

const texts = (element) => element.children.map((child) => child.textContent);
console.log(JSON.stringify({
    drawn, tips: [...tips], title: elements.title.textContent,
    peak: elements["peak-title"].textContent, holders: elements.holders.children.map(texts),
    locations: texts(elements.location),
}));
