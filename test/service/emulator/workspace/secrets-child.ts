// Fills a workspace with secrets, drops them, and prints which of them a snapshot of its own heap still holds.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import { getHeapSnapshot } from 'node:v8'
import { Changes } from '../../../../src/service/emulator/shared/changes.ts'
import { systemClock } from '../../../../src/service/emulator/shared/clock.ts'
import { Workspace } from '../../../../src/service/emulator/workspace/workspace.ts'

const sha256 = (secret: string) => createHash('sha256').update(secret).digest('hex')
const random = () => randomBytes(32).toString('base64url')

/** The hash of each secret, because the test itself must not hold the secrets. */
const secrets = new Map<string, string>()

function fill(): Workspace {
  const account = { publicKey: 'public', secretKey: random(), accessToken: random() }
  secrets.set(sha256(account.secretKey), 'the secret key of the account')
  secrets.set(sha256(account.accessToken), 'the access token')
  const workspace = new Workspace({
    clock: systemClock,
    newId: randomUUID,
    changes: new Changes(),
    credentials: account,
  })
  for (let index = 0; index < 20; index++) {
    const { public_key, secret } = workspace.apiKeys.create({ name: `key ${index}`, ttl: 60, type: 'full_access' })
    workspace.authenticateKeyPair(public_key, secret)
    secrets.set(sha256(secret), 'the secret of an API key')
  }
  return workspace
}

const workspace = fill()
// A control that shows that the search finds a string.
const { public_key, secret: kept } = workspace.apiKeys.create({ name: 'kept', ttl: 60, type: 'full_access' })
secrets.set(sha256(kept), 'one that was kept on purpose')
await turn()

const { strings } = JSON.parse(await text(getHeapSnapshot())) as { strings: string[] }
const inMemory = strings
  .flatMap((string) => string.match(/[\w-]{43,}/g) ?? [])
  .map((found) => secrets.get(sha256(found)))
console.log(
  JSON.stringify({
    created: workspace.apiKeys.list({ limit: 100 }).total - 1,
    stillAuthenticating: 'id' in workspace.authenticateKeyPair(public_key, kept) ? 1 : 0,
    inMemory: inMemory.filter((found) => found !== undefined),
  }),
)
