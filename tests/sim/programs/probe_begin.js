/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in a browser before a page's own script: notes its errors, and every rectangle it fills. */
"use strict";

const probe = { errors: [], rectangles: { line: [], lanes: [], map: [] } };

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
}
