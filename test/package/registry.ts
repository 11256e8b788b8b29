import { execFileSync } from 'node:child_process'

/**
 * Finds the registry that npm uses. If it cannot be reached, prints a message and returns `undefined`. On a CI machine it
 * throws, because a skipped test would prove nothing there.
 */
export function findRegistry(): string | undefined {
  const ask = (...args: string[]) => execFileSync('npm', args, { encoding: 'utf8', stdio: 'pipe', timeout: 30_000 })
  try {
    ask('view', 'lru-cache', 'name')
    return ask('config', 'get', 'registry').trim()
  } catch (cause) {
    if (process.env['CI']) throw new Error('the npm registry cannot be reached', { cause })
    console.warn('the npm registry cannot be reached: the tests that install packages are skipped')
    return undefined
  }
}
