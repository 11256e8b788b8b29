import { appendFileSync } from 'node:fs'
import type { Handlers, MediaEvent } from 'media-webhooks'

// Replaces the handlers of an example. What they do is what test/platforms/programs/record-handled.ts does.
async function recordHandled({ type, mediaId, qualities, title }: MediaEvent, { attempt }: { attempt: number }) {
  await new Promise((resolve) => setTimeout(resolve, Number(process.env['HANDLER_MS'] ?? 20)))
  if (title === 'fails once' && attempt === 1) throw new Error('as asked')
  appendFileSync(process.env['HANDLED'] as string, `${type} ${mediaId} ${qualities}\n`)
}

export const handlers: Handlers = {
  'file.received': recordHandled,
  'encoding.started': recordHandled,
  'partial.finished': recordHandled,
  'encoding.finished': recordHandled,
  'encoding.failed': recordHandled,
}
