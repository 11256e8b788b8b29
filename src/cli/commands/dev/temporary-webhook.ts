import { homedir, hostname } from 'node:os'
import { basename } from 'node:path'
import { ApiError, type Client, type Webhook } from '../../../client/index.ts'
import { isSameUrl } from '../../../client/register-webhook.ts'
import type { EventType } from '../../../index.ts'
import { program } from '../../help.ts'
import { subscribing } from '../../shared/events.ts'
import type { Screen } from '../../shared/screen.ts'
import { plain } from '../../shared/text.ts'

/** The webhook that a run needs. */
interface TemporaryWebhook {
  readonly url: string
  readonly name: string
  readonly events: readonly EventType[]
}

/** Begins the name of every webhook that `dev` creates, on any machine. */
const prefix = `${program} dev `

// The service was observed to take names of 100 characters.
const ownPrefix = `${prefix}${`${basename(homedir())}@${hostname()}`.slice(0, 70)}:`

/**
 * Returns the name of the webhook of the run that listens at a URL. It contains the port: while a run has the port, no
 * other run on this machine has a webhook of this name.
 */
export const nameFor = (url: string): string => `${ownPrefix}${new URL(url).port}`

/** Deletes the webhooks of killed runs with the same name or the same URL. It reports those of other ports. */
export async function deleteLeftovers(client: Client, { url, name }: TemporaryWebhook, { note, signal }: Screen) {
  const found: Webhook[] = []
  for await (const each of client.webhook.listAll({ search: prefix.trim() }, { signal })) found.push(each)
  for (const webhook of found.filter((each) => each.name?.startsWith(prefix))) {
    if (webhook.name === name || isSameUrl(webhook.url, url)) {
      await deleteIfThere(client, webhook.id)
      note(plain(`Deleted the webhook ${webhook.id}, which an earlier run had left behind.`))
    } else if (webhook.name?.startsWith(ownPrefix)) {
      note(
        plain(`The webhook ${webhook.id} is that of a run on another port, or was left behind. ${deleteHint(webhook)}`),
      )
    }
  }
}

/** Creates the webhook. It is not interrupted, because a call that is cut off can have created the webhook anyway. */
export async function createTemporary(client: Client, { url, name, events }: TemporaryWebhook): Promise<Webhook> {
  return (await client.webhook.create({ url, name, ...subscribing(events) })).data.webhook
}

/**
 * Deletes the webhook after Ctrl-C. Another Ctrl-C ends the process, so the id is printed beforehand.
 * @returns `false` if it could not be deleted, after it has printed the reason
 */
export async function deleteTemporary(client: Client, webhook: Webhook, { note }: Screen): Promise<boolean> {
  note(plain(`Deleting the webhook ${webhook.id}. Press Ctrl-C again to leave it at the service.`))
  try {
    await deleteIfThere(client, webhook.id)
    note('Deleted.')
    return true
  } catch (error) {
    note(plain(`The webhook ${webhook.id} is left at the service: ${(error as Error).message}. ${deleteHint(webhook)}`))
    return false
  }
}

/** Deletes a webhook, if it still exists. */
async function deleteIfThere(client: Client, id: string): Promise<void> {
  await client.webhook.delete(id).catch((error) => {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error
  })
}

const deleteHint = ({ id }: Webhook): string => `To delete it: ${program} webhooks delete ${id}`
