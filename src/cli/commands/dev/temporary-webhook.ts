import { homedir, hostname } from 'node:os'
import { basename } from 'node:path'
import type { EventType } from '../../../index.ts'
import { ApiError, type Client, type Webhook } from '../../../service/client/index.ts'
import { isSameUrl } from '../../../service/client/register-webhook.ts'
import { pasted, program } from '../../help.ts'
import { subscribing } from '../../shared/events.ts'
import type { Screen } from '../../shared/screen.ts'
import { plain } from '../../shared/text.ts'

interface TemporaryWebhook {
  readonly url: string
  readonly name: string
  readonly events: readonly EventType[]
}

/** Prefix of every webhook that `dev` creates, on any machine. */
const prefix = `${program} dev `

// The service accepts names of up to 100 characters (observed).
const ownPrefix = `${prefix}${`${basename(homedir())}@${hostname()}`.slice(0, 70)}:`

/** Names the webhook after the port: while a run has the port, no other run on this machine uses the name. */
export const nameFor = (url: string): string => `${ownPrefix}${new URL(url).port}`

/** Deletes what killed runs with the same name or URL left behind, and reports webhooks of other ports. */
export async function deleteLeftovers(client: Client, { url, name }: TemporaryWebhook, { note, signal }: Screen) {
  const found: Webhook[] = []
  for await (const each of client.webhook.listAll({ search: prefix.trim() }, { signal })) found.push(each)
  for (const webhook of found.filter((each) => each.name?.startsWith(prefix))) {
    if (webhook.name === name || isSameUrl(webhook.url, url)) {
      await deleteIfThere(client, webhook.id)
      note(plain(`Deleted the webhook ${webhook.id}, left behind by an earlier run.`))
    } else if (webhook.name?.startsWith(ownPrefix)) {
      note(
        plain(`The webhook ${webhook.id} belongs to a run on another port, or was left behind. ${deleteHint(webhook)}`),
      )
    }
  }
}

/** Not interruptible: a call that is cut off may have created the webhook anyway. */
export async function createTemporary(client: Client, { url, name, events }: TemporaryWebhook): Promise<Webhook> {
  return (await client.webhook.create({ url, name, ...subscribing(events) })).data.webhook
}

/** Prints the id first: a second Ctrl-C ends the process. @returns `false` if deleting failed */
export async function deleteTemporary(client: Client, webhook: Webhook, { note }: Screen): Promise<boolean> {
  note(plain(`Deleting the webhook ${webhook.id}. Press Ctrl-C again to leave it at the service.`))
  try {
    await deleteIfThere(client, webhook.id)
    note('Deleted.')
    return true
  } catch (error) {
    note(plain(`The webhook ${webhook.id} could not be deleted: ${(error as Error).message}. ${deleteHint(webhook)}`))
    return false
  }
}

async function deleteIfThere(client: Client, id: string): Promise<void> {
  await client.webhook.delete(id).catch((error) => {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error
  })
}

const deleteHint = ({ id }: Webhook): string => `To delete it: ${pasted} webhooks delete ${id}`
