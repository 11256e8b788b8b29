import type { ServerInit } from '@sveltejs/kit'
import { building } from '$app/environment'
import { receiver } from '$lib/server/receiver'

/** SvelteKit calls it once, when the server starts. */
export const init: ServerInit = async () => {
  if (building) return
  // The receiver opens now and not at the first delivery, to handle the events that an earlier process has left.
  await receiver().ready()
  // After SIGTERM, adapter-node stops listening and lets the requests in flight be answered. Then it emits this event.
  process.once('sveltekit:shutdown', () => receiver().close())
}
