/** Stands in for src/internal/churn-map.ts, to measure what it gains. */
export const ChurnMap = Map
