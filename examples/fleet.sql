-- SPDX-License-Identifier: BSD-2-Clause
-- What lines are worth, from the rows of `cozbpf db export --what experiments --to csv`, for DuckDB. As `cozbpf report` does it: an experiment is compared with those
-- at 0 % of its burst, which had the same host and the same load.
WITH experiments AS (
    SELECT * FROM read_csv('experiments.csv') WHERE kind = 'throughput' AND visits > 0
),
baseline AS (
    SELECT host, run, burst, point, sum(effective_ns) / sum(visits) AS ns_per_visit
    FROM experiments WHERE speedup = 0 GROUP BY ALL
),
-- How many visits there would have been in the same time at 0 %, and how many there were.
by_host AS (
    SELECT point, line, speedup, host, count(*) AS experiments, sum(effective_ns / ns_per_visit) AS usual, sum(visits) AS visits
    FROM experiments JOIN baseline USING (host, run, burst, point) WHERE speedup > 0 GROUP BY ALL
),
ratios AS (
    SELECT *, sum(usual) OVER cell / sum(visits) OVER cell AS ratio FROM by_host WINDOW cell AS (PARTITION BY point, line, speedup)
)
SELECT point, line, round(100 * speedup) AS percent, 100 * (1 - any_value(ratio)) AS effect,
    -- 95 %, by how much hosts differ
    196 * sqrt(sum(pow(usual - visits * ratio, 2))) / sum(visits) AS plus_minus,
    sum(experiments) AS experiments, count(*) AS hosts
FROM ratios GROUP BY point, line, speedup ORDER BY point, line, percent;
