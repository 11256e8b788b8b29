/** What an inbox over a database has: all of the contract but `handleNow`. */
export const everyFeature = {
  transactions: true,
  reads: true,
  keepsUnreadable: true,
  expects: true,
  pauses: true,
  strict: true,
  limits: true,
  late: true,
} as const
