import type { Invocation, Outcome } from './lambda-function.ts'

/** Runs the handlers of a function module in this process: what Lambda's runtime does in a sandbox. */
export function runSandbox(handlers: Readonly<Record<string, unknown>>): void {
  const answer = (outcome: Outcome | 'ready') => process.send?.(outcome)
  process.on('message', async ({ handler, event }: Invocation) => {
    try {
      answer({ result: await (handlers[handler] as (event: unknown) => Promise<unknown>)(event) })
    } catch (error) {
      answer({ error: String(error) })
    }
  })
  process.once('SIGTERM', () => process.exit())
  answer('ready')
}
