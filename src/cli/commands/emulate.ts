import { profiles } from '../../emulator/sending/profile.ts'
import { WebhookError } from '../../index.ts'
import { defineCommand } from '../command.ts'
import { choice, port, text, timeScale } from '../flags.ts'
import { explainPort, interrupted, servingExitCodes } from '../serving.ts'
import { table } from '../text.ts'

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
    const made = Object.entries(credentials).filter(([name]) => given[name as keyof typeof given] === undefined)
    if (json) screen.json({ ...addresses, profile, credentials: Object.fromEntries(made) })
    else {
      const labels = { url: 'base URL', api: 'API', page: 'page' }
      const keys = Object.entries({ publicKey: 'public key', secretKey: 'secret key', accessToken: 'access token' })
      screen.print(`The service is emulated on this machine, with the profile ${profile} (Ctrl-C ends it).\n`)
      screen.print(
        table(
          [
            ...Object.entries(labels).map(([name, label]) => [label, addresses[name as keyof typeof addresses]]),
            ...keys.map(([name, label]) => [label, Object.fromEntries(made)[name] ?? '(as given)']),
          ],
          '  ',
        ),
      )
    }
    await interrupted(screen.signal)
    await emulator.close()
    return 0
  },
})

const defined = <T extends object>(options: T) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
