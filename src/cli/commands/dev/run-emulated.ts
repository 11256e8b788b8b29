import { type EventType, eventTypes } from '../../../index.ts'
import { createClient } from '../../../service/client/index.ts'
import { program } from '../../help.ts'
import { maskedUrl } from '../../shared/mask.ts'
import type { Screen } from '../../shared/screen.ts'
import { interrupted } from '../../shared/serving.ts'
import { plain } from '../../shared/text.ts'
import { startEmulator } from '../emulate/start-emulator.ts'
import { deliveryPrinter } from '../trigger/print.ts'
import { createTemporary } from './temporary-webhook.ts'

interface RunOptions {
  readonly port: number | undefined
  readonly timeScale: number | undefined
  readonly publicKey: string | undefined
  readonly secretKey: string | undefined
  readonly accessToken: string | undefined
  readonly forwardTo: string
  readonly events: readonly EventType[]
  readonly headers: true | undefined
  readonly json: true | undefined
}

export async function runEmulated(options: RunOptions, screen: Screen): Promise<number> {
  const { forwardTo: to, events, headers, json, port, timeScale, publicKey, secretKey, accessToken } = options
  const emulator = await startEmulator({ port, timeScale, publicKey, secretKey, accessToken })
  try {
    const { url, credentials } = emulator
    const client = createClient(credentials, { baseUrl: url })
    const { id } = await createTemporary(client, { url: to, name: `${program} dev`, events })
    const webhook = { id, url: maskedUrl(to) }
    emulator.onDelivery(deliveryPrinter({ json, headers }, screen))
    if (json) screen.json({ url, webhook })
    else {
      const upload = `curl -s ${url}/emulator/media -H 'content-type: application/json' -d '{"title":"Holiday.mp4"}'`
      screen.print(`Emulating the service, with a page at ${url}. Press Ctrl-C to stop.`)
      screen.print(plain(`Created the webhook ${id}: ${eventsText(events)} to ${webhook.url}`))
      screen.print(`Upload a media item on the page, or with:\n\n  ${upload}\n`)
    }
    await interrupted(screen.signal)
    return 0
  } finally {
    await emulator.close()
  }
}

export const eventsText = (events: readonly EventType[]): string =>
  events.length === eventTypes.length ? 'all events' : events.join(', ')
