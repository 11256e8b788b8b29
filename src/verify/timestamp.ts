/**
 * Why a Unix timestamp in seconds cannot be accepted; `undefined` when it can.
 * The tolerance has two sides: a clock can be ahead as well as behind, and a signature from the future is no fresher.
 */
export function timestampFault(text: string, toleranceSeconds: number, now: () => number): string | undefined {
  if (!/^[0-9]{1,12}$/.test(text)) return 'the timestamp is malformed'
  const age = now() / 1000 - Number(text)
  // Written so that a tolerance or a clock that is not a number refuses.
  if (!(age <= toleranceSeconds)) return 'the timestamp is too old'
  if (!(age >= -toleranceSeconds)) return 'the timestamp is in the future'
  return undefined
}
