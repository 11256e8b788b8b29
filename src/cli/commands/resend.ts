import { defineCommand } from '../shared/command.ts'
import { required } from '../shared/flags.ts'
import { forward, forwardedText } from '../shared/forward.ts'
import { readDelivery } from '../shared/kept-delivery.ts'
import { receiverUrl, secretUrlHelp } from '../shared/secret-url.ts'
import { plain } from '../shared/text.ts'

export const resend = defineCommand({
  name: 'resend',
  summary: 'resends deliveries saved by listen or dev, with the same bytes and headers',
  details: secretUrlHelp,
  positionals: ['<file>'],
  morePositionals: '[file…]',
  flags: { to: required(receiverUrl('the receiver; without a query, it gets the query of each delivery')) },
  json: 'print one JSON object per delivery: file, status, durationMs, answer, failure',
  exitCodes: { 0: 'every delivery was acknowledged', 1: 'at least one delivery was not acknowledged' },
  examples: ['resend deliveries/*.http --to http://127.0.0.1:3000/webhooks/media'],
  async run({ positionals: files, values: { to, json } }, { print, json: printJson, paint, signal }) {
    // Read all files first: a bad one must stop the command before anything is sent.
    const deliveries = await Promise.all(files.map(readDelivery))
    let failures = 0
    for (const [index, delivery] of deliveries.entries()) {
      const forwarded = await forward(delivery, { to, signal })
      signal.throwIfAborted()
      if (forwarded.failure !== undefined) failures++
      const file = files[index] as string
      if (json) printJson({ file, ...forwarded })
      else print(`${plain(file)}  ${forwardedText(forwarded, paint)}`)
    }
    return failures === 0 ? 0 : 1
  },
})
