import type { Runner } from '../../../src/testing/runner.ts'
import { answers } from './adapter/answers.ts'
import { bodies } from './adapter/bodies.ts'
import { connections } from './adapter/connections.ts'
import type { MountAdapter } from './adapter/fixture.ts'

export type { MountAdapter, Mounted } from './adapter/fixture.ts'

/**
 * Tests an adapter over real sockets: request and answer translation, broken bodies, broken connections.
 *
 * ```ts
 * import { expect, test } from 'vitest'
 *
 * adapterContract(async (receiver) => {
 *   const server = await listen(myHandler(receiver))
 *   return { url: `${server.origin}/webhooks`, close: () => server.close() }
 * }, { test, expect })
 * ```
 * @param mount mounts a receiver for every method, on its own server
 */
export function adapterContract(mount: MountAdapter, runner: Runner): void {
  answers(mount, runner)
  bodies(mount, runner)
  connections(mount, runner)
}
