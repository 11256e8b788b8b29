/** The options of {@link canTest}. */
interface CanTestOptions {
  /**
   * `false` if CI also works without it.
   * @defaultValue true
   */
  readonly inCi?: boolean
}

/**
 * Returns true if the tests that need a program can run. Without it, they are skipped on a user's machine, with a
 * warning. In CI it throws, because a skipped test proves nothing.
 * @param problem the reason why they cannot, such as `redis-server does not run here`
 * @param fix what to do, such as `install it`
 */
export function canTest(isThere: boolean, problem: string, fix: string, { inCi = true }: CanTestOptions = {}): boolean {
  if (isThere) return true
  const { CI = 'false' } = process.env
  if (inCi && !['', '0', 'false'].includes(CI)) throw new Error(`${problem}; to run its tests, ${fix}`)
  console.warn(`${problem}, so its tests are skipped; to run them, ${fix}`)
  return false
}
