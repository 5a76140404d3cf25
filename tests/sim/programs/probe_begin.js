/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in a browser before a page's own script: notes its errors, every rectangle it fills, and
 * every text it draws with its place. */
"use strict";

const probe = { errors: [], rectangles: { line: [], lanes: [], map: [] },
    written: { axis: [], "map-axis": [], "line-scale": [], "map-scale": [], line: [], lanes: [] } };

window.addEventListener("error", (event) => probe.errors.push(event.message));
{
    const fill = CanvasRenderingContext2D.prototype.fillRect;
    CanvasRenderingContext2D.prototype.fillRect = function (...numbers) {
        probe.rectangles[this.canvas.id].push([this.fillStyle, ...numbers]);
        if (!numbers.every(isFinite)) {
            probe.errors.push(this.canvas.id + ": a rectangle at " + numbers);
        }
        fill.apply(this, numbers);
    };
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const width = this.measureText(text).width, canvas = this.canvas;
        probe.written[canvas.id].push([text, x, y]);
        if (x < 0 || x + width > canvas.clientWidth + 1 || y < 0 || y > canvas.clientHeight) {
            probe.errors.push(canvas.id + ": " + text + " is cut");
        }
        write.call(this, text, x, y);
    };
}
