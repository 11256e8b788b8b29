import { afterEach } from 'vitest'
import type { Mounted } from '../../src/testing/contract/adapter.ts'
import { serve } from './mounts.ts'

const opened: Mounted[] = []
afterEach(async () => {
  for (const { close } of opened.splice(0)) await close()
})

/** Serves a listener until the end of the test. Resolves with its URL. */
export async function open(...parameters: Parameters<typeof serve>): Promise<string> {
  const mounted = await serve(...parameters)
  opened.push(mounted)
  return mounted.url
}
