import { appendFileSync } from 'node:fs'
import type { Handler, MediaEvent } from '../../../src/index.ts'

/**
 * A handler that records its runs. At a media item with the title `fails once` its first attempt throws. It takes 20
 * ms.
 */
export const recordHandled: Handler<MediaEvent> = async ({ type, mediaId, qualities, title }, { attempt }) => {
  await new Promise((resolve) => setTimeout(resolve, 20))
  if (title === 'fails once' && attempt === 1) throw new Error('as asked')
  appendFileSync(process.env['HANDLED'] as string, `${type} ${mediaId} ${qualities}\n`)
}
