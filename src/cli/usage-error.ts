/** The command line makes no sense: the program ends with status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
