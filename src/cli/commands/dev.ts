import { eventTypes } from '../../index.ts'
import { apiFlags, clientFrom } from '../shared/api-command.ts'
import { defineCommand } from '../shared/command.ts'
import { events } from '../shared/events.ts'
import { port, required, text, UsageError } from '../shared/flags.ts'
import { maskedUrl } from '../shared/mask.ts'
import { secretUrl } from '../shared/secret-url.ts'
import { interrupted, servingExitCodes } from '../shared/serving.ts'
import { plain, shellQuoted } from '../shared/text.ts'
import { createTemporary, deleteLeftovers, deleteTemporary, nameFor } from './dev/temporary-webhook.ts'
import { standardPort, startListening } from './listen/start-listening.ts'

export const dev = defineCommand({
  name: 'dev',
  summary: 'creates a temporary webhook, forwards its deliveries to your server, keeps them, and deletes it at the end',
  details:
    'It listens as listen does. The service has to reach it: give the URL of your tunnel to its port with --url. An\n' +
    'emulator on this machine needs none. Ctrl-C deletes the webhook. One that a killed run has left behind is deleted by\n' +
    'the next run with the same port or --url. The files that it keeps are for resend. They contain credentials.',
  flags: {
    forwardTo: required(secretUrl('forward each delivery that is answered 200 to this URL, and keep it')),
    url: secretUrl('the public URL of your tunnel to --port (default: the port itself, if the service is local)'),
    save: text('<folder>', 'keep the deliveries there (default: a new temporary folder)'),
    events: events('the event types to receive (default: all)'),
    port: port(standardPort),
    ...apiFlags,
  },
  json: 'print a line with the URL, the folder and the webhook, then one JSON object per delivery, as listen does',
  exitCodes: {
    ...servingExitCodes,
    1: 'could not listen on the port, or the webhook could not be created or deleted',
    130: 'interrupted before the webhook was created',
  },
  serves: true,
  examples: [
    'dev --forward-to http://127.0.0.1:3000/webhooks/media --base-url http://127.0.0.1:4010',
    'dev --forward-to http://127.0.0.1:3000/webhooks/media --url https://example.ngrok.app --save deliveries',
  ],
  async run(input, screen) {
    const { port = standardPort, forwardTo: to, save, json, url, events = eventTypes, baseUrl } = input.values
    const client = clientFrom(input, screen)
    if (url === undefined && !isLocal(baseUrl)) {
      throw new UsageError('--url is missing: the service needs the public URL of a tunnel to --port of this machine')
    }
    const listening = await startListening({ port, to, save, json, advises: false }, screen)
    try {
      const wanted = { url: url ?? listening.url, name: nameFor(listening.url), events }
      await deleteLeftovers(client, wanted, screen)
      const webhook = await createTemporary(client, wanted)
      const shown = { id: webhook.id, name: wanted.name, url: maskedUrl(wanted.url) }
      if (json) screen.json({ url: listening.url, folder: listening.folder, webhook: shown })
      else {
        screen.print(`Listening on ${listening.url}, forwarding to ${maskedUrl(to)}. Press Ctrl-C to stop.`)
        screen.print(`Deliveries that are answered 200 are kept in ${shellQuoted(listening.folder ?? '')}`)
        const types = events.length === eventTypes.length ? 'all events' : events.join(', ')
        screen.print(plain(`Created the webhook ${shown.id} at the service: ${types} to ${shown.url}`))
      }
      await interrupted(screen.signal)
      return (await deleteTemporary(client, webhook, screen)) ? 0 : 1
    } finally {
      await listening.close()
    }
  },
})

const isLocal = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
