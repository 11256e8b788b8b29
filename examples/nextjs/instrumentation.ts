/** Next.js calls it once, when the server starts. */
export async function register() {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return
  const { receiver } = await import('./lib/receiver')
  // The receiver opens now and not at the first delivery, to handle the events that an earlier process has left.
  await receiver().ready()
  process.once('SIGTERM', () => {
    // Next.js stops listening now, answers the requests in flight, and waits for the promises that `after` has passed
    // to it. Handlers get 10 s of that. If it were closed immediately, the receiver would answer the requests in flight
    // 503.
    setTimeout(() => receiver().close({ timeoutMs: 10_000 }), 1_000)
  })
}
