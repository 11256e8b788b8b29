import { profiles } from '../../emulator/sending/profile.ts'
import { WebhookError } from '../../index.ts'
import { defineCommand } from '../shared/command.ts'
import { choice, port, text, timeScale } from '../shared/flags.ts'
import { explainPort, interrupted, servingExitCodes } from '../shared/serving.ts'
import { table } from '../shared/text.ts'

const standardPort = 4010

export const emulate = defineCommand({
  name: 'emulate',
  summary: 'plays the service on this machine: its API, its sender, and a page to watch them',
  details:
    'Credentials that are not given are made up, and printed. What `documented` and `observed` mean is in the README.',
  flags: {
    port: port(standardPort),
    profile: choice(profiles, 'how events are sent: as the service documents it, or as it was seen to do it'),
    timeScale,
    publicKey: text('<key>', 'public part of the API key', 'MEDIA_WEBHOOKS_PUBLIC_KEY'),
    secretKey: text('<key>', 'its secret part', 'MEDIA_WEBHOOKS_SECRET_KEY'),
    accessToken: text('<token>', 'bearer token', 'MEDIA_WEBHOOKS_ACCESS_TOKEN'),
  },
  json: 'print one JSON object: url, api, page, profile, and the credentials that were made up',
  exitCodes: servingExitCodes,
  examples: ['emulate', 'emulate --port 0 --profile observed --time-scale 0.1'],
  async run({ values: { port = standardPort, profile = 'documented', json, ...values } }, screen) {
    // Only here: it is most of what there is to load, and the other commands start without it.
    const { createEmulator } = await import('../../emulator/index.ts')
    const { timeScale = 1, publicKey, secretKey, accessToken } = values
    const given = { publicKey, secretKey, accessToken }
    const emulator = await createEmulator({ port, profile, timeScale, ...defined(given) }).catch((error) => {
      throw error instanceof WebhookError && error.cause ? explainPort(error.cause, port) : error
    })
    const { url, credentials } = emulator
    const addresses = { url, api: `${url}/api`, page: `${url}/` }
    const madeUp: Partial<typeof credentials> = Object.fromEntries(
      Object.entries(credentials).filter(([name]) => given[name as keyof typeof given] === undefined),
    )
    if (json) screen.json({ ...addresses, profile, credentials: madeUp })
    else {
      const asGiven = '(as given)'
      const rows = [
        ['base URL', url],
        ['API', addresses.api],
        ['page', addresses.page],
        ['public key', madeUp.publicKey ?? asGiven],
        ['secret key', madeUp.secretKey ?? asGiven],
        ['access token', madeUp.accessToken ?? asGiven],
      ]
      screen.print(`The service is emulated on this machine, with the profile ${profile} (Ctrl-C ends it).\n`)
      screen.print(table(rows, '  '))
    }
    await interrupted(screen.signal)
    await emulator.close()
    return 0
  },
})

const defined = <T extends object>(options: T) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
