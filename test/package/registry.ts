import { execFileSync } from 'node:child_process'
import { canTest } from '../support/can-test.ts'

/** Finds the registry that npm uses. Returns `undefined` if the tests that install packages are skipped without it. */
export function findRegistry(): string | undefined {
  const registry = reachRegistry()
  canTest(registry !== undefined, 'The npm registry cannot be reached', 'check the network and the settings of npm')
  return registry
}

function reachRegistry(): string | undefined {
  const ask = (...args: string[]) => execFileSync('npm', args, { encoding: 'utf8', stdio: 'pipe', timeout: 120_000 })
  try {
    ask('view', 'lru-cache', 'name')
    return ask('config', 'get', 'registry').trim()
  } catch {
    return undefined
  }
}
