"""Decodes the bodies of journal records into columns: many at once, or one by one as ``wire`` does.

``locating`` finds the changes and their properties, ``values`` makes columns of them, ``onebyone``
takes the unusual bodies, and ``columns`` puts all of it together. The data source ``mqis.journal``
and ``transforms.bodies`` both use it.
"""
