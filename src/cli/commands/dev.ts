import { eventTypes } from '../../index.ts'
import { apiFlags, clientFrom } from '../shared/api-command.ts'
import { defineCommand } from '../shared/command.ts'
import { events } from '../shared/events.ts'
import { flagName, port, required, text, timeScale, toggle, UsageError, url as urlFlag } from '../shared/flags.ts'
import { maskedUrl } from '../shared/mask.ts'
import { secretUrl } from '../shared/secret-url.ts'
import { interrupted, servingExitCodes } from '../shared/serving.ts'
import { plain, shellQuoted } from '../shared/text.ts'
import { eventsText, runEmulated } from './dev/run-emulated.ts'
import { createTemporary, deleteLeftovers, deleteTemporary, nameFor } from './dev/temporary-webhook.ts'
import { emulatorPort } from './emulate/start-emulator.ts'
import { standardPort, startListening } from './listen/start-listening.ts'

/** Flags of one mode only: the emulator, or a running service. */
const emulatorFlags = ['headers', 'timeScale']
const serviceFlags = ['url', 'save']

export const dev = defineCommand({
  name: 'dev',
  summary: 'starts an emulator that sends events to your server, or forwards those of the service with --base-url',
  details:
    'Without --base-url it starts an emulator with a webhook for your server, and prints a line for each delivery.\n\n' +
    'With --base-url it creates a temporary webhook at the service, then saves and forwards each delivery that it answers\n' +
    '200, as listen does. The service must be able to reach it: tunnel to its port and pass the public URL with --url. A\n' +
    'service on this machine needs no tunnel. Ctrl-C deletes the webhook. If a run is killed, the next one with the same\n' +
    'port or --url deletes its webhook. The saved files are for resend. They contain credentials.',
  flags: {
    forwardTo: required(secretUrl('the URL of your server')),
    events: events('the event types to receive (default: all)'),
    headers: toggle('emulator: also print the headers of each delivery'),
    timeScale: { ...timeScale, help: `emulator: ${timeScale.help}` },
    url: secretUrl('the public URL of your tunnel to --port (default: the port itself, if the service is local)'),
    save: text('<folder>', 'with --base-url: save deliveries there (default: a new temporary folder)'),
    port: {
      ...port(standardPort),
      help: `the port on 127.0.0.1 (default: ${emulatorPort}, with --base-url ${standardPort})`,
    },
    ...apiFlags,
    baseUrl: urlFlag(
      'the address of a running service, without /api',
      'http://127.0.0.1:4010',
      'MEDIA_WEBHOOKS_BASE_URL',
    ),
  },
  json: 'print a line with the URL and the webhook, then one JSON object per delivery, as trigger does, or listen with --base-url',
  exitCodes: {
    ...servingExitCodes,
    1: 'could not listen on the port, or the webhook could not be created or deleted',
    130: 'interrupted before the webhook was created',
  },
  serves: true,
  examples: [
    'dev --forward-to http://127.0.0.1:3000/webhooks/media',
    'dev --forward-to http://127.0.0.1:3000/webhooks/media --base-url https://service.example --url https://tunnel.example',
  ],
  async run(input, screen) {
    const { values, given } = input
    const { forwardTo: to, save, json, url, events = eventTypes, baseUrl } = values
    const misplaced = (baseUrl === undefined ? serviceFlags : emulatorFlags).find((name) => given.has(name))
    if (misplaced !== undefined) {
      const goes = baseUrl === undefined ? 'with' : 'without'
      throw new UsageError(`${flagName(misplaced)} goes ${goes} --base-url (or MEDIA_WEBHOOKS_BASE_URL)`)
    }
    if (baseUrl === undefined) return runEmulated({ ...values, events }, screen)
    const { port = standardPort } = values
    const client = clientFrom({ ...input, values: { ...values, baseUrl } }, screen)
    if (url === undefined && !isLocal(baseUrl)) {
      throw new UsageError(
        '--url is missing: pass the public URL of a tunnel to --port, or the service cannot reach this machine',
      )
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
        screen.print(`Deliveries answered 200 are saved in ${shellQuoted(listening.folder ?? '')}`)
        screen.print(plain(`Created the webhook ${shown.id} at the service: ${eventsText(events)} to ${shown.url}`))
      }
      await interrupted(screen.signal)
      return (await deleteTemporary(client, webhook, screen)) ? 0 : 1
    } finally {
      await listening.close()
    }
  },
})

const isLocal = (url: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
