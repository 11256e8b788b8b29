/** Replaces src/internal/churn-map.ts in the variant that is measured without it. */
export const ChurnMap = Map
