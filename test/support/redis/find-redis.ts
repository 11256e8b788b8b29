import { canTest } from '../can-test.ts'
import { runs } from '../runs.ts'

/** Returns true if the tests that need redis-server can run. */
export const findRedis = (): boolean =>
  canTest(runs('redis-server'), 'redis-server does not run here', 'install it (Debian: apt-get install redis-server)')
