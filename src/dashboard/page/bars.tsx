interface DrawingProps {
  readonly values: readonly number[]
  /** Smaller values, drawn in front of the others. */
  readonly inner?: readonly number[]
  readonly tone?: 'good' | 'bad' | undefined
}

interface BarsProps extends DrawingProps {
  readonly label: string
  /** One or more numbers of the whole period. */
  readonly figure: string
}

const height = 40
const step = 4

/** A chart of bars. The numbers are in a table beside it, so that screen readers get its label and its sum only. */
export function Bars({ label, figure, ...drawing }: BarsProps) {
  return (
    <figure class="card chart">
      <figcaption>{label}</figcaption>
      <p class="figure">{figure}</p>
      <Drawing {...drawing} />
    </figure>
  )
}

/** The bars alone, as wide as the place they stand in. Screen readers skip them. */
export function Drawing({ values, inner, tone }: DrawingProps) {
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
      <path class={inner ? 'outer' : 'bars'} d={pathOf(values, highest)} />
      {inner && <path class="bars" d={pathOf(inner, highest)} />}
    </svg>
  )
}

/** Draws a bar for each value above 0, and at least a little one. */
function pathOf(values: readonly number[], highest: number): string {
  return values
    .map((value, index) => {
      if (value === 0) return ''
      const top = Math.round((height - Math.max(1.5, (value / highest) * (height - 2))) * 10) / 10
      return `M${index * step + 0.5} ${height}V${top}h${step - 1}V${height}z`
    })
    .join('')
}
