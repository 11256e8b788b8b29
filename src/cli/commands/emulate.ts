import { profiles } from '../../service/emulator/sending/profile.ts'
import { defineCommand } from '../shared/command.ts'
import { choice, port, text, timeScale } from '../shared/flags.ts'
import { printDelivery } from '../shared/print-delivery.ts'
import { interrupted, servingExitCodes } from '../shared/serving.ts'
import { table } from '../shared/text.ts'
import { emulatorPort, startEmulator } from './emulate/start-emulator.ts'

export const emulate = defineCommand({
  name: 'emulate',
  summary: 'runs an emulator of the service: its API, its sender, and a page to watch them',
  details:
    'It generates and prints the credentials that you do not pass, then prints each delivery (not with --json). Secrets\n' +
    'that you pass appear neither in the output nor on the page. The documentation explains the two profiles.',
  flags: {
    port: port(emulatorPort),
    profile: choice(profiles, 'behave as documented (default), or as observed at the real service'),
    timeScale,
    publicKey: text('<key>', 'the public part of the API key', 'MEDIA_WEBHOOKS_PUBLIC_KEY'),
    secretKey: text('<key>', 'the secret part of the API key', 'MEDIA_WEBHOOKS_SECRET_KEY'),
    accessToken: text('<token>', 'the bearer token', 'MEDIA_WEBHOOKS_ACCESS_TOKEN'),
  },
  json: 'print one JSON object: url, api, page, profile, and the two arguments of createClient, credentials (those generated) and options',
  exitCodes: servingExitCodes,
  serves: true,
  examples: ['emulate', 'emulate --port 0 --profile observed --time-scale 0.1'],
  async run({ values: { profile = 'documented', json, port, timeScale, ...given } }, screen) {
    const emulator = await startEmulator({ port, profile, timeScale, ...given })
    const { url, credentials } = emulator
    const addresses = { url, api: `${url}/api`, page: `${url}/` }
    const generated: Partial<typeof credentials> = Object.fromEntries(
      Object.entries(credentials).filter(([name]) => given[name as keyof typeof given] === undefined),
    )
    if (json) screen.json({ ...addresses, profile, credentials: generated, options: { baseUrl: url } })
    else {
      const asGiven = '(as given)'
      const rows = [
        ['base URL', url],
        ['API', addresses.api],
        ['page', addresses.page],
        ['public key', generated.publicKey ?? asGiven],
        ['secret key', generated.secretKey ?? asGiven],
        ['access token', generated.accessToken ?? asGiven],
      ]
      screen.print(`Emulating the service with the profile ${profile}. Press Ctrl-C to stop.\n`)
      screen.print(`${table(rows, '  ')}\n`)
    }
    const stopPrinting = json
      ? () => {}
      : emulator.onDelivery((delivery, sending) => printDelivery(delivery, sending, screen, { host: true }))
    await interrupted(screen.signal)
    stopPrinting()
    await emulator.close()
    return 0
  },
})
