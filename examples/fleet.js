// SPDX-License-Identifier: BSD-2-Clause
// node fleet.js QUERY.sql: prints what DuckDB answers, a row in a line, in columns that tabs separate. Files that the query names are taken from the working directory.
'use strict';
const fs = require('fs');
const { DuckDBInstance } = require('@duckdb/node-api');

const shown = (value) => (typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(2) : String(value));

async function main() {
	const connection = await (await DuckDBInstance.create(':memory:')).connect();
	const answer = await connection.runAndReadAll(fs.readFileSync(process.argv[2], 'utf8'));
	const rows = [answer.columnNames(), ...answer.getRows()];
	for (const row of rows) console.log(row.map(shown).join('\t'));
}

main();
