/** Called once by Next.js, when the server starts. */
export async function register() {
  if (process.env.NEXT_RUNTIME === 'nodejs') {
    const { receiver } = await import('./lib/receiver')
    // Opens the receiver now, not at the first delivery, to handle events an earlier process left.
    await receiver().ready()
    const close = () => {
      // Next.js stops listening now, answers the requests in flight, and waits for the promises passed to `after`.
      // Handlers get 10 s of that. Closed at once, the receiver would answer the requests in flight 503.
      setTimeout(() => receiver().close({ timeoutMs: 10_000 }), 1_000)
    }
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, close)
  }
}
