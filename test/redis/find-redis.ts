import { execFileSync } from 'node:child_process'

/**
 * Checks whether redis-server is installed, and prints a warning if not. Throws in CI, where a skipped test would prove
 * nothing.
 */
export function findRedis(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    if (process.env['CI'])
      throw new Error('redis-server does not run here; install it (Debian: apt-get install redis-server)')
    console.warn('redis-server does not run on this machine: its tests are skipped')
    return false
  }
}
