import type { Media, TimelineEntry } from '../media/media.ts'
import { Moment } from './moment.tsx'
import type { PageState } from './page-state.ts'
import { StateMark } from './sending-state.tsx'
import { addressOfSending } from './view.ts'
import { webhookName } from './webhook-name.ts'

/** The events in the life of a media, and what became of each on its way to each webhook. */
export function Timeline({ page, media }: { page: PageState; media: Media }) {
  return (
    <ol class="timeline">
      {media.timeline.map((entry) => (
        <li class={entry.emittedAt ? 'emitted' : 'to-come'}>
          <span class="data">
            {entry.type} {entry.quality}
          </span>{' '}
          {entry.emittedAt ? <Moment at={new Date(entry.emittedAt)} /> : <span class="quiet">to come</span>}
          {entry.emittedAt && <Sendings page={page} entry={entry} />}
        </li>
      ))}
    </ol>
  )
}

function Sendings({ page, entry }: { page: PageState; entry: TimelineEntry }) {
  if (entry.sendingIds.length === 0) return <p class="quiet">No webhook was subscribed</p>
  const sendings = entry.sendingIds.flatMap((id) => page.parts.outbox.get(id) ?? [])
  return (
    <ul class="row">
      {sendings.map(({ id, state, webhookId }) => (
        <li>
          <a href={addressOfSending(page.view, id)}>
            <StateMark state={state} brief /> {webhookName(page, webhookId)}
          </a>
        </li>
      ))}
    </ul>
  )
}
