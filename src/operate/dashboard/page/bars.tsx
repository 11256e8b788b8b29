import { Ago } from './times.tsx'

interface DrawingProps {
  readonly values: readonly number[]
  readonly inner?: readonly number[]
  readonly tone?: 'good' | 'bad' | undefined
  readonly isScaled?: boolean
}

interface BarsProps extends DrawingProps {
  readonly label: string
  readonly figure: string
  readonly format: (value: number) => string
  /** Text of each bar. Default: its formatted value. */
  readonly texts?: readonly string[]
  readonly axis: { readonly since: Date; readonly slotMs: number; readonly now: Date }
}

const height = 40
const step = 4

/** A bar chart. With JavaScript, pointer and arrow keys show the text of a bar. The numbers page has all values. */
export function Bars({ label, figure, format, texts, axis: { since, slotMs, now }, ...drawing }: BarsProps) {
  const { values } = drawing
  const highest = Math.max(...values)
  return (
    <figure
      class="card chart"
      tabindex={0}
      data-since={since.getTime()}
      data-slot={slotMs}
      data-texts={(texts ?? values.map(format)).join('|')}
    >
      <figcaption>{label}</figcaption>
      <p class="figure">
        {figure} {highest > 0 && <span class="quiet">highest {format(highest)}</span>}
      </p>
      <Drawing {...drawing} isScaled={highest > 0} />
      <p class="row quiet">
        <Ago at={since} now={now} />
        <output data-script />
        <span>now</span>
      </p>
    </figure>
  )
}

/** The bars alone, hidden from screen readers. Square-root scale, so that a burst does not flatten the rest. */
export function Drawing({ values, inner, tone, isScaled = false }: DrawingProps) {
  const highest = Math.max(...values, ...(inner ?? []), 0)
  return (
    <svg
      viewBox={`0 0 ${values.length * step} ${height}`}
      preserveAspectRatio="none"
      class={tone}
      aria-hidden="true"
      focusable="false"
    >
      <path class="ground" d={`M0 ${height - 0.5}H${values.length * step}`} />
      {isScaled && <path class="ground quarter" d={`M0 ${height / 2}H${values.length * step}`} />}
      <path class={inner ? 'outer' : 'bars'} d={drawPath(values, highest)} />
      {inner && <path class="bars" d={drawPath(inner, highest)} />}
    </svg>
  )
}

/** One bar per value above 0, with a minimum height. */
function drawPath(values: readonly number[], highest: number): string {
  const bars = values.map((value) => {
    if (value === 0) return `m${step} 0`
    const top = Math.round((height - Math.max(1.5, Math.sqrt(value / highest) * (height - 2))) * 10) / 10
    return `V${top}h${step - 1}V${height}m1 0`
  })
  return `M0.5 ${height}${bars.join('')}`
}
