import { execFileSync } from 'node:child_process'

/**
 * Whether redis-server is installed. Where it is not, says so; a CI machine has to have it, since a test that is skipped
 * there proves nothing.
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
