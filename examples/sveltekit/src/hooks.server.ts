import type { ServerInit } from '@sveltejs/kit'
import { building } from '$app/environment'
import { receiver } from '$lib/server/receiver'

/** Called once by SvelteKit, when the server starts. */
export const init: ServerInit = async () => {
  if (building) return
  // Opens the receiver now, not at the first delivery, to handle events an earlier process left.
  await receiver().ready()
  // After SIGTERM, adapter-node stops listening, answers the requests in flight, and then emits this event.
  process.once('sveltekit:shutdown', () => receiver().close())
}
