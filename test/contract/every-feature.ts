/** An inbox that leaves out nothing of the contract. */
export const everyFeature = {
  transactions: true,
  reads: true,
  expects: true,
  pauses: true,
  strict: true,
  limits: true,
  late: true,
} as const
