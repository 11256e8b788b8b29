/**
 * Returns the seed of the random numbers of a test: `SEED` of the environment, or another one each time. The programs that
 * the test starts have the same. It is printed when the test fails.
 */
export function testSeed(): number {
  process.env['SEED'] ??= `${Math.floor(Math.random() * 1_000_000)}`
  return Number(process.env['SEED'])
}
