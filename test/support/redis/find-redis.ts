import { execFileSync } from 'node:child_process'
import { canTest } from '../can-test.ts'

/** Returns true if the tests that need redis-server can run. */
export const findRedis = (): boolean =>
  canTest(isInstalled(), 'redis-server does not run here', 'install it (Debian: apt-get install redis-server)')

function isInstalled(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
