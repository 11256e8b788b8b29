/** When an object has to be woken. Beside the statements of `sqlite/statements.ts`. */
export const work = {
  held: 'SELECT 1 FROM inbox_lane WHERE owner IS NOT NULL LIMIT 1',
  isPaused: "SELECT 1 FROM inbox_pause WHERE handler = ''",
  ready: `SELECT min(at) AS at FROM (
      SELECT min(ready_at) AS at FROM inbox_lane WHERE owner IS NULL AND ready_at IS NOT NULL AND crashes = 0
      UNION ALL SELECT min(ready_at) FROM inbox_lane WHERE owner IS NULL AND ready_at IS NOT NULL AND crashes > 0
    )`,
  deadline: 'SELECT min(due_at) AS at FROM inbox_expectation',
}
