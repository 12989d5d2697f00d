// Sorts and filters tables, and shows the values under the pointer. Everything is on the page without it.
"use strict";

function keyOf(cell) {
	const text = cell.textContent.trim();
	const number = cell.classList.contains("n") ? parseFloat(text) : NaN;
	return Number.isNaN(number) ? text : number;
}

function compare(a, b) {
	if (typeof a !== typeof b)
		return typeof a === "number" ? 1 : -1;
	return a < b ? -1 : a > b ? 1 : 0;
}

function makeSortable(table) {
	const heads = [...table.tHead.rows[0].cells];
	heads.forEach((head, column) => {
		const button = document.createElement("button");
		button.type = "button";
		button.textContent = head.textContent;
		head.replaceChildren(button);
		button.addEventListener("click", () => {
			// Numbers are wanted largest first, but for the rank; names from a to z.
			const first = head.classList.contains("n") && column > 0 ? "descending" : "ascending";
			const other = first === "ascending" ? "descending" : "ascending";
			const order = head.getAttribute("aria-sort") === first ? other : first;
			const sign = order === "ascending" ? 1 : -1;
			const rows = [...table.tBodies[0].rows];
			rows.sort((x, y) => sign * compare(keyOf(x.cells[column]), keyOf(y.cells[column])));
			table.tBodies[0].append(...rows);
			heads.forEach((h) => h.removeAttribute("aria-sort"));
			head.setAttribute("aria-sort", order);
		});
	});
}

function labelled(text, control) {
	const label = document.createElement("label");
	label.append(text + " ", control);
	return label;
}

function makeFilter(table) {
	const text = document.createElement("input");
	const verdict = document.createElement("select");
	const box = document.createElement("div");
	const rows = [...table.tBodies[0].rows];
	const verdicts = new Set(rows.map((row) => row.dataset.v));
	text.type = "search";
	for (const v of ["all", ...verdicts])
		verdict.append(new Option(v, v));
	box.className = "filter";
	box.append(labelled("File or function", text), labelled("Verdict", verdict));
	function apply() {
		const wanted = text.value.toLowerCase();
		for (const row of rows) {
			const name = (row.cells[1].textContent + " " + row.cells[2].textContent).toLowerCase();
			const shown = name.includes(wanted) && (verdict.value === "all" || verdict.value === row.dataset.v);
			const figure = document.getElementById(row.dataset.f);
			row.hidden = !shown;
			if (figure)
				figure.hidden = !shown;
		}
	}
	text.addEventListener("input", apply);
	verdict.addEventListener("change", apply);
	table.parentElement.before(box);
}

// The cells of a curve are in the table of its details: speedup, effect, low, high, experiments.
function cellsOf(figure) {
	return [...figure.querySelectorAll("table.cells tbody tr")].map((row) => [...row.cells].map((c) => c.textContent));
}

function show(figure, cells, i) {
	const at = Math.max(0, Math.min(cells.length - 1, i));
	const [speedup, effect, low, high, n] = cells[at];
	figure.dataset.at = at;
	figure.querySelector("output").textContent = `${speedup} % faster: ${effect} % [${low}, ${high}], ${n} experiments`;
}

function onPointer(event) {
	const svg = event.target.closest("svg.plot");
	if (!svg)
		return;
	const figure = svg.closest("figure"), cells = cellsOf(figure), box = svg.getBoundingClientRect();
	const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width - svg.dataset.left;
	const speedup = (100 * at) / svg.dataset.width;
	let best = 0;
	cells.forEach((c, i) => {
		if (Math.abs(c[0] - speedup) < Math.abs(cells[best][0] - speedup))
			best = i;
	});
	if (cells.length)
		show(figure, cells, best);
}

function onKey(event) {
	const svg = event.target.closest("svg.plot");
	const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
	if (!svg || !step)
		return;
	const figure = svg.closest("figure"), cells = cellsOf(figure);
	event.preventDefault();
	if (cells.length)
		show(figure, cells, Number(figure.dataset.at ?? -1) + step);
}

document.querySelectorAll("table.lines").forEach((table) => {
	makeSortable(table);
	makeFilter(table);
});
document.querySelectorAll("svg.plot").forEach((svg) => {
	svg.tabIndex = 0;
});
document.addEventListener("pointermove", onPointer);
document.addEventListener("keydown", onKey);
