import { execFileSync } from 'node:child_process'

/**
 * The registry that npm uses, or `undefined`, with a message, where it cannot be reached. On a CI machine it has to be
 * reachable: a test that is skipped there proves nothing.
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
