import { Field, Tick } from '../../../internal/page/fields.tsx'
import { Section } from '../../../internal/page/section.tsx'
import type { Media, TimelineEntry } from '../media/media.ts'
import { Brief, Moment, StateMark } from './elements.tsx'
import { ActionForm } from './forms.tsx'
import { type PageState, typedInto, webhookName } from './page-state.ts'
import { findPage, ListPager } from './pager.tsx'
import { addressOfSending } from './view.ts'

export function MediaSection({ page }: { page: PageState }) {
  const media = page.service.studio.list()
  const { offset, limit, ...pager } = findPage(page, 'media', media.length, 5)
  const typed = typedInto(page, 'media')
  return (
    <Section id="media" title="Media" shows={['media', 'sendings']}>
      <ActionForm page={page} action="media" class="card">
        <Field label="Title" name="title" placeholder="Untitled.mp4" value={typed?.get('title') ?? undefined} />
        <Field label="Qualities" name="qualities" value={typed?.get('qualities') ?? '360p,720p'} />
        <Tick label="The encoding fails" name="fails" checked={typed?.has('fails') ?? false} />
        <button type="submit" class="primary">
          Upload media
        </button>
      </ActionForm>
      {media.length > 0 && (
        <ul class="cards">
          {media.slice(offset, offset + limit).map((one) => (
            <MediaCard page={page} media={one} />
          ))}
        </ul>
      )}
      <ListPager page={page} list="media" {...pager} />
    </Section>
  )
}

function MediaCard({ page, media }: { page: PageState; media: Media }) {
  return (
    <li id={`media-${media.id}`} class="card">
      <h3>
        <Brief text={media.title} />
      </h3>
      <p class="quiet">
        {media.state}, uploaded at <Moment at={media.createdAt} />
      </p>
      <Timeline page={page} media={media} />
    </li>
  )
}

function Timeline({ page, media }: { page: PageState; media: Media }) {
  return (
    <ol class="timeline">
      {media.timeline.map((entry) => (
        <li class={entry.emittedAt ? 'emitted' : 'pending'}>
          <span class="data">
            {entry.type} {entry.quality}
          </span>{' '}
          {entry.emittedAt ? <Moment at={new Date(entry.emittedAt)} /> : <span class="quiet">not yet</span>}
          {entry.emittedAt && <Sendings page={page} entry={entry} />}
        </li>
      ))}
    </ol>
  )
}

function Sendings({ page, entry }: { page: PageState; entry: TimelineEntry }) {
  if (entry.sendingIds.length === 0) return <p class="quiet">No webhook was subscribed</p>
  const sendings = entry.sendingIds.flatMap((id) => page.service.outbox.get(id) ?? [])
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
