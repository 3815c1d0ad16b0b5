"""Points of time against size in, a plot as SVG out: the points, and the line through the smallest and the largest."""

from __future__ import annotations

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 360, 60, 310, 30


def svg(points: list[list[float]]) -> str:
    """Return the plot of `points`, each a size in bytes and a time in seconds (relative to the largest)."""
    sizes = [size / (1 << 20) for size, _ in points]
    longest = max(time for _, time in points)
    times = [time / longest for _, time in points]
    x = [LEFT + size / max(sizes) * (WIDTH - LEFT - 30) for size in sizes]
    y = [BOTTOM - time * (BOTTOM - TOP) for time in times]
    marks = "".join(
        f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4"/><text x="{left:.1f}" y="{BOTTOM + 18}" '
        f'text-anchor="middle">{size:g}</text>'
        for left, top, size in zip(x, y, sizes, strict=True)
        if size >= max(sizes) / 16 or size == min(sizes)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f'<path d="M{LEFT} {TOP}V{BOTTOM}H{WIDTH - 30}" fill="none" stroke="black"/>'
        f'<path d="M{x[0]:.1f} {y[0]:.1f}L{x[-1]:.1f} {y[-1]:.1f}" stroke="silver"/>{marks}'
        f'<text x="{LEFT}" y="18">time, relative to the largest log</text>'
        f'<text x="{WIDTH - 30}" y="{BOTTOM + 38}" text-anchor="end">size of the log, MiB</text></svg>\n'
    )
